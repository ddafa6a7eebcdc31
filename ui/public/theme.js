// Before the first paint: the stored theme. Without one the theme of the system is used.
try {
  const theme = localStorage.getItem('gateway.theme')
  if (theme === 'light' || theme === 'dark') document.documentElement.dataset.theme = theme
} catch {
  // The browser stores nothing.
}
