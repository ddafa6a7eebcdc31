// Icons and glyphs. They stand once in the page, and other parts refer to them.

/** The symbols and the patterns. */
const SYMBOLS = (
  <svg className="sprite" aria-hidden="true">
    <defs>
      <symbol id="g-blocked" viewBox="0 0 16 16">
        <path d="M5.1 1h5.8L15 5.1v5.8L10.9 15H5.1L1 10.9V5.1z" fill="currentColor" />
        <path className="gk gk--b" d="M4.6 8h6.8" />
      </symbol>
      <symbol id="g-degraded" viewBox="0 0 16 16">
        <circle cx="8" cy="8" r="6.2" fill="none" stroke="currentColor" strokeWidth="1.7" />
        <path d="M8 1.8a6.2 6.2 0 0 1 0 12.4z" fill="currentColor" />
      </symbol>
      <symbol id="g-direct" viewBox="0 0 16 16">
        <path d="M8 .6L15.4 8 8 15.4.6 8z" fill="currentColor" />
        <path className="gk" d="M4.6 8h6.4M8.7 5.6L11.2 8l-2.5 2.4" />
      </symbol>
      <symbol id="g-down" viewBox="0 0 16 16">
        <rect x="1.6" y="1.6" width="12.8" height="12.8" rx="2.4" fill="currentColor" />
        <path className="gk" d="M5.4 5.4l5.2 5.2M10.6 5.4l-5.2 5.2" />
      </symbol>
      <symbol id="g-idle" viewBox="0 0 16 16">
        <circle cx="8" cy="8" r="5.6" fill="none" stroke="currentColor" strokeWidth="1.6" />
      </symbol>
      <symbol id="g-leak" viewBox="0 0 16 16">
        <path
          d="M8 1.2c.5 0 .9.2 1.1.7l6 11c.5.9 0 1.9-1.1 1.9H2c-1.1 0-1.6-1-1.1-1.9l6-11c.2-.5.6-.7 1.1-.7z"
          fill="currentColor"
        />
        <path className="gk" d="M8 5.6v4.2M8 12.3v.02" />
      </symbol>
      <symbol id="g-ok" viewBox="0 0 16 16">
        <circle cx="8" cy="8" r="7" fill="currentColor" />
        <path className="gk" d="M4.9 8.3l2.2 2.2 4-4.6" />
      </symbol>
      <symbol id="g-unknown" viewBox="0 0 16 16">
        <circle
          cx="8"
          cy="8"
          r="6.6"
          fill="none"
          stroke="currentColor"
          strokeWidth="1.6"
          strokeDasharray="2.6 2.6"
        />
        <path
          d="M6.2 6.4a1.8 1.8 0 1 1 2.6 1.7c-.6.3-.8.6-.8 1.2M8 11.4v.02"
          fill="none"
          stroke="currentColor"
          strokeWidth="1.6"
          strokeLinecap="round"
        />
      </symbol>
      <symbol id="i-activity" viewBox="0 0 16 16">
        <path d="M1.8 8.4h2.8l1.8-5 3.2 9 1.8-4h2.8" />
      </symbol>
      <symbol id="i-arrow" viewBox="0 0 16 16">
        <path d="M2.4 8h11M9.4 4l4 4-4 4" />
      </symbol>
      <symbol id="i-bell" viewBox="0 0 16 16">
        <path d="M3.4 11.6h9.2c-1-1-1.2-2-1.2-4.4a3.4 3.4 0 0 0-6.8 0c0 2.4-.2 3.4-1.2 4.4zM6.8 13.8h2.4" />
      </symbol>
      <symbol id="i-capture" viewBox="0 0 16 16">
        <circle cx="8" cy="8" r="2.2" />
        <path d="M2 5V3.4A1.4 1.4 0 0 1 3.4 2H5M11 2h1.6A1.4 1.4 0 0 1 14 3.4V5M14 11v1.6a1.4 1.4 0 0 1-1.4 1.4H11M5 14H3.4A1.4 1.4 0 0 1 2 12.6V11" />
      </symbol>
      <symbol id="i-check" viewBox="0 0 16 16">
        <path d="M3 8.6l3.4 3.4L13 4.6" />
      </symbol>
      <symbol id="i-clock" viewBox="0 0 16 16">
        <circle cx="8" cy="8" r="5.8" />
        <path d="M8 4.8V8l2.2 1.6" />
      </symbol>
      <symbol id="i-copy" viewBox="0 0 16 16">
        <rect x="5.4" y="5.4" width="8" height="8" rx="1.2" />
        <path d="M10.6 2.6H4a1.4 1.4 0 0 0-1.4 1.4v6.6" />
      </symbol>
      <symbol id="i-device" viewBox="0 0 16 16">
        <rect x="2" y="3" width="12" height="8" rx="1.2" />
        <path d="M5.6 13.4h4.8" />
      </symbol>
      <symbol id="i-devices" viewBox="0 0 16 16">
        <rect x="1.8" y="3" width="9" height="7" rx="1" />
        <path d="M1.8 12.8h6" />
        <rect x="10" y="6.4" width="4.2" height="7" rx="1" />
      </symbol>
      <symbol id="i-dns" viewBox="0 0 16 16">
        <path d="M8 1.8l5.2 2v4c0 3.2-2.2 5.4-5.2 6.4-3-1-5.2-3.2-5.2-6.4v-4z" />
        <path d="M5.6 8h4.8M5.6 5.8h4.8M5.6 10.2h2.6" />
      </symbol>
      <symbol id="i-down" viewBox="0 0 16 16">
        <path d="M3.6 6L8 10.4 12.4 6" />
      </symbol>
      <symbol id="i-download" viewBox="0 0 16 16">
        <path d="M8 2.6v7.6M4.8 7.4L8 10.4l3.2-3M3 13.4h10" />
      </symbol>
      <symbol id="i-filter" viewBox="0 0 16 16">
        <path d="M2.4 4h11.2M4.6 8h6.8M6.8 12h2.4" />
      </symbol>
      <symbol id="i-globe" viewBox="0 0 16 16">
        <circle cx="8" cy="8" r="5.8" />
        <path d="M2.4 8h11.2M8 2.2c2 1.7 2.8 3.6 2.8 5.8S10 12.1 8 13.8C6 12.1 5.2 10.2 5.2 8S6 3.9 8 2.2z" />
      </symbol>
      <symbol id="i-grip" viewBox="0 0 16 16">
        <path d="M6 3.6h.01M10 3.6h.01M6 8h.01M10 8h.01M6 12.4h.01M10 12.4h.01" strokeWidth="2.2" />
      </symbol>
      <symbol id="i-lock" viewBox="0 0 16 16">
        <rect x="3.4" y="7" width="9.2" height="6.6" rx="1.2" />
        <path d="M5.4 7V5a2.6 2.6 0 0 1 5.2 0v2" />
      </symbol>
      <symbol id="i-menu" viewBox="0 0 16 16">
        <path d="M2.4 4.4h11.2M2.4 8h11.2M2.4 11.6h11.2" />
      </symbol>
      <symbol id="i-more" viewBox="0 0 16 16">
        <path d="M3.5 8h.01M8 8h.01M12.5 8h.01" strokeWidth="2.2" />
      </symbol>
      <symbol id="i-network" viewBox="0 0 16 16">
        <rect x="5.8" y="1.8" width="4.4" height="3.6" rx=".8" />
        <rect x="1.6" y="10.6" width="4.4" height="3.6" rx=".8" />
        <rect x="10" y="10.6" width="4.4" height="3.6" rx=".8" />
        <path d="M8 5.4V8M3.8 10.6V8h8.4v2.6" />
      </symbol>
      <symbol id="i-overview" viewBox="0 0 16 16">
        <circle cx="8" cy="8" r="5.8" />
        <path d="M8 8l2.6-2.8" />
        <path d="M8 2.2v1.4M2.2 8h1.4M12.4 8h1.4" />
      </symbol>
      <symbol id="i-paths" viewBox="0 0 16 16">
        <circle cx="3.2" cy="12.4" r="1.6" />
        <circle cx="12.8" cy="3.6" r="1.6" />
        <path d="M4.8 12.4h4.4a2.2 2.2 0 0 0 0-4.4H6.8a2.2 2.2 0 0 1 0-4.4h4.4" />
      </symbol>
      <symbol id="i-pin" viewBox="0 0 16 16">
        <path d="M5.4 2.4h5.2M6.2 2.4v4.2L4.2 9.4h7.6l-2-2.8V2.4M8 9.4v4.4" />
      </symbol>
      <symbol id="i-plus" viewBox="0 0 16 16">
        <path d="M8 3v10M3 8h10" />
      </symbol>
      <symbol id="i-policies" viewBox="0 0 16 16">
        <path d="M2.2 4h6.2M2.2 8h4M2.2 12h6.2" />
        <path d="M11.4 3.2v9.2M9.2 10.4l2.2 2.2 2.2-2.2" />
      </symbol>
      <symbol id="i-refresh" viewBox="0 0 16 16">
        <path d="M13 8a5 5 0 1 1-1.6-3.7M13.2 2.4v2.8h-2.8" />
      </symbol>
      <symbol id="i-right" viewBox="0 0 16 16">
        <path d="M6 3.6L10.4 8 6 12.4" />
      </symbol>
      <symbol id="i-search" viewBox="0 0 16 16">
        <circle cx="7" cy="7" r="4.4" />
        <path d="M10.4 10.4L14 14" />
      </symbol>
      <symbol id="i-system" viewBox="0 0 16 16">
        <path d="M2 4.6h6.4M12 4.6h2M2 11.4h2M7.6 11.4H14" />
        <circle cx="10.2" cy="4.6" r="1.8" />
        <circle cx="5.8" cy="11.4" r="1.8" />
      </symbol>
      <symbol id="i-table" viewBox="0 0 16 16">
        <rect x="2.2" y="3" width="11.6" height="10" rx="1.2" />
        <path d="M2.2 6.6h11.6M6.6 6.6V13" />
      </symbol>
      <symbol id="i-up" viewBox="0 0 16 16">
        <path d="M3.6 10L8 5.6 12.4 10" />
      </symbol>
      <symbol id="i-x" viewBox="0 0 16 16">
        <path d="M4 4l8 8M12 4l-8 8" />
      </symbol>
      <symbol id="logo" viewBox="0 0 24 24">
        <path
          d="M17.8 5.9A8.5 8.5 0 1 0 20.5 12h-5.6"
          fill="none"
          stroke="currentColor"
          strokeWidth="2.6"
          strokeLinecap="round"
          strokeLinejoin="round"
        />
        <circle cx="10.6" cy="12" r="2.1" fill="currentColor" />
      </symbol>
      <pattern id="hx" width="6" height="6" patternUnits="userSpaceOnUse" patternTransform="rotate(45)">
        <path className="hx" d="M0 0V6" strokeWidth="3" />
      </pattern>
      <pattern id="hoff" width="6" height="6" patternUnits="userSpaceOnUse" patternTransform="rotate(-45)">
        <path className="hoff" d="M0 0V6" strokeWidth="1" />
      </pattern>
    </defs>
  </svg>
)

/** Draws nothing: it defines the symbols and the patterns. */
export function Sprite() {
  return SYMBOLS
}

export type IconName =
  | 'activity'
  | 'arrow'
  | 'bell'
  | 'capture'
  | 'check'
  | 'clock'
  | 'copy'
  | 'device'
  | 'devices'
  | 'dns'
  | 'down'
  | 'download'
  | 'filter'
  | 'globe'
  | 'grip'
  | 'lock'
  | 'menu'
  | 'more'
  | 'network'
  | 'overview'
  | 'paths'
  | 'pin'
  | 'plus'
  | 'policies'
  | 'refresh'
  | 'right'
  | 'search'
  | 'system'
  | 'table'
  | 'up'
  | 'x'

/** An icon of the interface. Its meaning is in the words beside it. */
export function Icon({ name }: { name: IconName }) {
  return (
    <svg className="i" aria-hidden="true">
      <use href={`#i-${name}`} />
    </svg>
  )
}

/** The mark of the product. */
export function Logo() {
  return (
    <svg aria-hidden="true">
      <use href="#logo" />
    </svg>
  )
}
