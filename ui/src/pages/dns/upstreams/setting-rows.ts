// A part of the tree of settings as rows.

export interface SettingRow {
  key: string
  value: string
  source: string
  apply: string
  pending: boolean
}

interface Leaf {
  value: unknown
  source: string
  apply: string
  pending_restart: boolean
}

/** The settings below a key, by their whole keys. */
export function settingsBelow(tree: unknown, key: string): SettingRow[] {
  const rows: SettingRow[] = []
  collect((tree as Record<string, unknown>)[key], key, rows)
  return rows
}

function collect(node: unknown, key: string, rows: SettingRow[]) {
  if (typeof node !== 'object' || node === null) return
  if (isLeaf(node)) {
    rows.push({
      key,
      value: show(node.value),
      source: node.source,
      apply: node.apply,
      pending: node.pending_restart,
    })
    return
  }
  for (const [name, below] of Object.entries(node)) collect(below, `${key}.${name}`, rows)
}

function isLeaf(node: object): node is Leaf {
  return 'value' in node && 'source' in node
}

/** A value as it is written; nothing is `-`. */
export function show(value: unknown): string {
  if (value === null || value === undefined || value === '') return '-'
  if (Array.isArray(value)) return value.length === 0 ? '-' : value.map(show).join(', ')
  if (typeof value === 'object') return Object.keys(value).length === 0 ? '-' : JSON.stringify(value)
  return String(value)
}
