// The settings: the tree of the API as a list, and values as text that can be edited.

import type { Schemas } from '@/api/client'

export interface Setting {
  key: string
  value: unknown
  source: Schemas['Source']
  apply: Schemas['Apply']
  pending_restart: boolean
}

/** Flattens the tree: each leaf has a value and its source. */
export function listOf(tree: unknown, above = ''): Setting[] {
  if (!isObject(tree)) return []
  return Object.entries(tree).flatMap(([name, node]) => {
    const key = above ? `${above}.${name}` : name
    if (!isObject(node)) return []
    return isLeaf(node) ? [{ ...(node as unknown as Setting), key }] : listOf(node, key)
  })
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

function isLeaf(node: Record<string, unknown>): boolean {
  return typeof node.source === 'string' && typeof node.apply === 'string' && 'value' in node
}

/** Settings of one part of the gateway. */
export interface Group {
  /** The first word of the keys; empty for parts with few settings, which are together. */
  name: string
  settings: Setting[]
}

/** A part with fewer settings has no heading of its own. */
const FEW = 3

/** Settings by the part they are of, in the order of the API; `all` decides which parts have a heading. */
export function groupsOf(settings: readonly Setting[], all: readonly Setting[]): Group[] {
  const partOf = (setting: Setting) => setting.key.split('.')[0] ?? ''
  const sizes = new Map<string, number>()
  for (const setting of all) sizes.set(partOf(setting), (sizes.get(partOf(setting)) ?? 0) + 1)
  const groups = new Map<string, Setting[]>()
  const rest: Setting[] = []
  for (const setting of settings) {
    const part = partOf(setting)
    if ((sizes.get(part) ?? 0) < FEW) rest.push(setting)
    else groups.set(part, [...(groups.get(part) ?? []), setting])
  }
  const named = [...groups].map(([name, each]) => ({ name, settings: each }))
  return rest.length > 0 ? [...named, { name: '', settings: rest }] : named
}

/** Settings whose key or value has all words. */
export function find(settings: Setting[], typed: string): Setting[] {
  const words = typed.toLowerCase().split(/\s+/).filter(Boolean)
  return settings.filter((setting) => {
    const searched = `${setting.key} ${shown(setting.value)}`.toLowerCase()
    return words.every((word) => searched.includes(word))
  })
}

/** Settings by name, for what reads them without their values. */
export function keysOf(tree: unknown): string[] {
  return listOf(tree).map((setting) => setting.key)
}

/** A value in one line. */
export function shown(value: unknown): string {
  if (value === null || value === undefined || value === '') return ''
  if (Array.isArray(value) && value.every((each) => typeof each !== 'object')) return value.join(', ')
  return typeof value === 'object' ? JSON.stringify(value) : String(value)
}

/** The control that fits a value. */
export type Control = 'switch' | 'number' | 'text' | 'lines' | 'unset' | 'json'

export function controlOf(value: unknown): Control {
  if (typeof value === 'boolean') return 'switch'
  if (typeof value === 'number') return 'number'
  if (typeof value === 'string') return 'text'
  if (value === null || value === undefined) return 'unset'
  if (Array.isArray(value) && value.length > 0 && value.every((each) => typeof each === 'string'))
    return 'lines'
  return 'json'
}

/** A value as it is typed. */
export function typedOf(value: unknown, control: Control): string {
  if (control === 'lines') return (value as string[]).join('\n')
  if (control === 'json') return JSON.stringify(value, null, 2)
  return value === null || value === undefined ? '' : String(value)
}

/** What was typed as a value. Throws a `SyntaxError` if it is not JSON where it must be. */
export function valueOf(typed: string, control: Control): unknown {
  if (control === 'switch') return typed === 'true'
  if (control === 'text') return typed
  if (control === 'number') return Number(typed)
  if (control === 'lines')
    return typed
      .split('\n')
      .map((line) => line.trim())
      .filter(Boolean)
  if (control === 'json') return JSON.parse(typed)
  // Nothing is known of the type of a value that was never set.
  const trimmed = typed.trim()
  if (trimmed === '') return null
  if (/^(-?\d+(\.\d+)?|true|false|\[.*\]|\{.*\})$/s.test(trimmed)) return JSON.parse(trimmed)
  return trimmed
}
