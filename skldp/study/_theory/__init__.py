"""The theory figures of the BitRand paper, as tables with the exact epsilon beside the stated one."""
