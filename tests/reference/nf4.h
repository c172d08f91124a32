/* nf4.h - what bitsandbytes makes of the tensors of tests/core/test_nf4.c; tests/reference/make_nf4.py prints it. */
static const struct {
    const char *name;
    int count, exponent, kind;
    uint64_t codes, absmax, absmax2, values; /* FNV-1a of the bytes, 64 bits */
    float offset, first, last;               /* the first and last value */
} expected[] = {
    {"even", 320, 0, 0, 0x0bde97aef6024eb8, 0x56a31a2376da5c49, 0xce294d9c45c378f1, 0x8b088070c05cfab0,
     0x1.f926fe0000000p-1f, -0x1.77b74e0000000p-3f, 0x1.1e7b480000000p-1f},
    {"tail", 19213, -5, 0, 0xcf58070ee2bb70b1, 0xda9955eeb4be1cd7, 0x6fcb4d3724264bee, 0x5c29967bdc4b00e4,
     0x1.f866620000000p-6f, -0x1.7791660000000p-8f, 0x1.f846d80000000p-6f},
    {"uneven", 38463, 3, 1, 0xbf893b8c2f633e68, 0xd033b92ee18408a8, 0xf52d2828fa0a4397, 0xf78793b99ac73131,
     0x1.5c44ba0000000p+10f, 0x1.1147a80000000p-5f, -0x1.09b9140000000p+3f},
    {"one", 1, 0, 0, 0xaf63ba4c8601b2c6, 0xaf63f24c860211ee, 0x7f62b6e33fb03f0a, 0xfd7216ec1cdb4206,
     0x1.3a89100000000p-3f, -0x1.3a89100000000p-3f, -0x1.3a89100000000p-3f},
    {"block", 64, 0, 0, 0xe6d949219d5205d9, 0xaf63f24c860211ee, 0x7f62b6e33fb03f0a, 0x24210f62bd393446,
     0x1.fc57440000000p-1f, -0x1.77b6280000000p-3f, 0x1.6f822e0000000p-1f},
    {"sparse", 1281, -3, 2, 0xfe47ac10b60ec5c6, 0xed0ed2517424b18e, 0x778238bde8577ee2, 0x3d33b8cc652a5abf,
     0x1.3c49de0000000p-8f, -0x0.0p+0f, -0x0.0p+0f},
    {"denormal", 578, -140, 1, 0xd42395fa0404a55c, 0x8f3b94c976d10ce4, 0x7f62b6e33fb03f0a, 0xaf111554b9df8815,
     0x1.7c62600000000p-130f, 0x0.0p+0f, 0x0.0p+0f},
    {"huge", 16448, 116, 1, 0xd398127413a4cd6c, 0x60481ba7c8b6e94b, 0x388d1959c457c5ed, 0xd2a8af099b5a7b99,
     0x1.60d1ee0000000p+123f, -0x1.d25b4a0000000p+114f, 0x1.31b2540000000p+122f},
};
