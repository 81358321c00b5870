// Runs before anything is drawn, so that no page flashes in the wrong colours.
try {
  const theme = localStorage.getItem('xstreamq.theme');
  if (theme === 'light' || theme === 'dark') document.documentElement.dataset.theme = theme;
} catch { /* storage may be forbidden: the system's colours, then */ }
