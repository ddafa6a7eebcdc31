// Numbers, sizes, rates and times in words.

let language = 'en-GB'

export function setFormatLanguage(chosen: 'en' | 'de') {
  language = chosen === 'de' ? 'de-DE' : 'en-GB'
}

/** A number with thin spaces between thousands: `18 204`. */
export function formatNumber(value: number, digits = 0): string {
  const parts = new Intl.NumberFormat(language, { maximumFractionDigits: digits, useGrouping: true })
    .formatToParts(value)
    .map((part) => (part.type === 'group' ? ' ' : part.value))
  return parts.join('')
}

const UNITS = ['B', 'kB', 'MB', 'GB', 'TB', 'PB']

/** A size in decimal units: `12.4 MB`. */
export function formatBytes(bytes: number): string {
  let value = bytes
  let unit = 0
  while (value >= 1000 && unit < UNITS.length - 1) {
    value /= 1000
    unit += 1
  }
  return `${formatNumber(value, unit === 0 || value >= 100 ? 0 : 1)} ${UNITS[unit]}`
}

/** A rate, from bytes per second: `29.4 Mbit/s`. */
export const formatRate = (bytesPerSecond: number): string => formatBits(bytesPerSecond * 8)

/** A rate, from bits per second. */
export function formatBits(bits: number): string {
  if (bits < 1000) return `${formatNumber(bits)} bit/s`
  if (bits < 1_000_000) return `${formatNumber(bits / 1000, 1)} kbit/s`
  if (bits < 1_000_000_000) return `${formatNumber(bits / 1_000_000, 1)} Mbit/s`
  return `${formatNumber(bits / 1_000_000_000, 1)} Gbit/s`
}

interface DurationTexts {
  common: {
    seconds: (seconds: number) => string
    minutes: (minutes: number, seconds: number) => string
    hours: (hours: number, minutes: number) => string
    days: (days: number, hours: number) => string
  }
}

/** An age or a duration in seconds: `4 s`, `3m 12s`, `9 d 4 h`. */
export function formatAge(seconds: number, text: DurationTexts): string {
  const whole = Math.floor(seconds)
  if (whole < 60) return text.common.seconds(whole)
  if (whole < 3600) return text.common.minutes(Math.floor(whole / 60), whole % 60)
  if (whole < 86_400) return text.common.hours(Math.floor(whole / 3600), Math.floor((whole % 3600) / 60))
  return text.common.days(Math.floor(whole / 86_400), Math.floor((whole % 86_400) / 3600))
}

type Style = 'short' | 'seconds' | 'long'

/** A time of day; the date too if it is another day, or if the style is long. */
export function formatTime(time: string, style: Style = 'short'): string {
  const date = new Date(time)
  if (Number.isNaN(date.getTime())) return time
  const clock: Intl.DateTimeFormatOptions = {
    hour: '2-digit',
    minute: '2-digit',
    ...(style === 'short' ? {} : { second: '2-digit' }),
  }
  const today = new Date().toDateString() === date.toDateString()
  if (style !== 'long' && today) return new Intl.DateTimeFormat(language, clock).format(date)
  const day: Intl.DateTimeFormatOptions =
    style === 'long'
      ? { year: 'numeric', month: 'short', day: 'numeric' }
      : { month: 'short', day: 'numeric' }
  return new Intl.DateTimeFormat(language, { ...day, ...clock }).format(date)
}
