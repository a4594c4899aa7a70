"""The schema document: places in it, drafts, references."""
