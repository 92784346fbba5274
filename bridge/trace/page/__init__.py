"""The trace page: one file, no network. Its parts are page.html, page.css and the scripts here."""
