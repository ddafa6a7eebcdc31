// The first run: the wizard opens by itself until it was finished or skipped once.

import { useEffect, useState } from 'react'

const STORED = 'gateway.first-run'

/** Opens the wizard again, from the page of the system. */
export function openWizard() {
  localStorage.setItem(STORED, 'open')
  location.assign('/')
}

export function useWizard(setupRequired: boolean) {
  const [state, setState] = useState(localStorage.getItem(STORED))
  const close = () => {
    localStorage.setItem(STORED, 'done')
    setState('done')
  }
  const open = state === 'open' || (setupRequired && state !== 'done')
  // It stays open when its first step makes the account, and after a reload.
  if (open && state !== 'open') setState('open')
  useEffect(() => {
    if (open) localStorage.setItem(STORED, 'open')
  }, [open])
  return { open, close }
}
