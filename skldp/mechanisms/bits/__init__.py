"""Numbers as randomized binary codes: BitRand, LATENT and OME."""
