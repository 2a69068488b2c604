"""Cases of com.amd.quark::ExtendedLSTM: the axes of LSTM that it has, and one for each tensor's scale and zero
point."""
