"""Cases of com.amd.quark::ExtendedLSTM: LSTM's axes as far as it has them, and one for each tensor's scale and zero
point."""

from ...._face import face

__getattr__, __dir__ = face(
    __name__,
    codec="B R W X Y calibrated",
    producer="NotQuantizable as_extended documented kernel_rows quantize quantized",
    spec="ExtendedSpec extended",
)
