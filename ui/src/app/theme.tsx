// The theme: that of the system, light or dark. public/theme.js sets the stored one before the first paint.

import { useState } from 'react'
import { Segmented } from '@/components/segmented'
import { useText } from '@/text'

const STORED = 'gateway.theme'
type Theme = 'system' | 'light' | 'dark'

function stored(): Theme {
  const theme = localStorage.getItem(STORED)
  return theme === 'light' || theme === 'dark' ? theme : 'system'
}

export function setTheme(theme: Theme) {
  if (theme === 'system') {
    localStorage.removeItem(STORED)
    delete document.documentElement.dataset.theme
  } else {
    localStorage.setItem(STORED, theme)
    document.documentElement.dataset.theme = theme
  }
}

export function ThemeChoice() {
  const text = useText()
  const [theme, choose] = useState(stored)
  return (
    <Segmented
      label={text.shell.theme}
      value={theme}
      options={[
        ['system', text.shell.themes.system],
        ['light', text.shell.themes.light],
        ['dark', text.shell.themes.dark],
      ]}
      onChange={(next) => {
        setTheme(next)
        choose(next)
      }}
    />
  )
}
