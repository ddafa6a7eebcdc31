// Marks the page while the daemon is silent: nothing on it has a hue then, so that no old state looks like a present one.

import { useEffect } from 'react'
import { useVerdict } from '@/components/verdict'

export function Silence() {
  const { last, fresh } = useVerdict()
  const silent = last !== undefined && !fresh
  useEffect(() => {
    document.documentElement.toggleAttribute('data-silent', silent)
  }, [silent])
  return null
}
