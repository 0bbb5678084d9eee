"""What people look at: statistics, tables, figures, the page."""
