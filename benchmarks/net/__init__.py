"""The net under the release that halves the code: v0.4.0 and this version side by side on a frozen corpus."""
