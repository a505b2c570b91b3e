// Runs before anything is drawn, so that a chosen theme does not flash.
try {
  const theme = localStorage.getItem('tollgate-theme');
  if (theme === 'light' || theme === 'dark') document.documentElement.dataset.theme = theme;
} catch {
  // Storage is disabled, so the system's theme applies.
}
