"""The default beside all rivals, on sets of many kinds: what is measured, how, and the page that shows it."""
