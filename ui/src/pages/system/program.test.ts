import { expect, it } from 'vitest'
import { programOf } from './program'

it('names the browser and the system of a session', () => {
  expect(programOf('Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0')).toBe(
    'Firefox 140, Linux',
  )
  const chrome = 'AppleWebKit/537.36 (KHTML, like Gecko) Chrome/142.0.0.0 Mobile Safari/537.36'
  expect(programOf(`Mozilla/5.0 (Linux; Android 10; K) ${chrome}`)).toBe('Chrome 142, Android')
  expect(programOf('curl/8.5.0')).toBe('curl/8.5.0')
})
