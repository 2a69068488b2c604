"""HTML, JSON, Markdown and XML reports, made from run directories. No verdict is decided here."""
