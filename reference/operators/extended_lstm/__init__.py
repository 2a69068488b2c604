"""com.amd.quark::ExtendedLSTM: its document, its faults, and the kernel that AMD Quark ships."""
