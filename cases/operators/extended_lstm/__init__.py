"""Cases of com.amd.quark::ExtendedLSTM: LSTM's axes as far as it has them, and one for each tensor's scale and zero
point."""
