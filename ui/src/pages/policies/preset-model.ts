// Presets: templates of a policy or a profile, and what is made of them.

import type { Schemas } from '@/api/client'
import { EMPTY, type Draft as PolicyDraft, type Hop, type PolicyInput } from './model'

export type Preset = Schemas['Preset']
export type PresetKind = 'policy' | 'profile'
type Body = Record<string, unknown>

export function kindOf({ template }: Pick<Preset, 'template'>): PresetKind {
  return template.policy ? 'policy' : 'profile'
}

export function bodyOf({ template }: Pick<Preset, 'template'>): Body {
  return template.policy ?? template.profile ?? {}
}

/** What a preset leaves open, as the form has it. */
export type Use = {
  name: string
  priority: string
  source_type: PolicyDraft['source_type']
  source_value: string
  hops: readonly Hop[]
}

export function startOf(preset: Preset): Use {
  const body: Partial<PolicyInput> = bodyOf(preset)
  return {
    name: body.name ?? preset.name,
    priority: String(body.priority ?? EMPTY.priority),
    source_type: (body.source_type ?? EMPTY.source_type) as Use['source_type'],
    source_value: body.source_value ?? '',
    hops: (body.hops ?? []) as Hop[],
  }
}

/** The body of the request that makes the object: the template and the fields that were filled in. */
export function fieldsOf(kind: PresetKind, use: Use): Body {
  const { name, hops, source_type, source_value } = use
  if (kind === 'profile') return { name, hops }
  return { name, hops, source_type, source_value, priority: Math.round(Number(use.priority)) }
}

/** The policy or the profile as a policy, to say what it does. */
export function draftOf(preset: Preset, use: Use): PolicyDraft {
  return { ...EMPTY, ...bodyOf(preset), ...fieldsOf(kindOf(preset), use) }
}

/** A preset as the form has it: its template is JSON. */
export type PresetForm = {
  name: string
  description: string
  category: Schemas['PresetCategoryInput']
  kind: PresetKind
  template: string
}

export const NEW_PRESET: PresetForm = {
  name: '',
  description: '',
  category: 'privacy',
  kind: 'policy',
  template: written({
    name: '',
    priority: 500,
    source_type: 'device_group',
    source_value: '',
    hops: [],
    fail_policy: 'fail-closed',
  }),
}

export function presetForm(preset: Preset): PresetForm {
  const { name, description, category } = preset
  return { name, description, category, kind: kindOf(preset), template: written(bodyOf(preset)) }
}

/** The input of the API. Fails if the template is no object in JSON. */
export function presetInput({ kind, template, ...rest }: PresetForm): Schemas['PresetInput'] {
  const body = readTemplate(template)
  // Whether it is built in is read only.
  return { ...rest, template: { policy: null, profile: null, [kind]: body } } as Schemas['PresetInput']
}

/** Reads a template. Fails with a sentence of the browser if it is no JSON. */
export function readTemplate(template: string): Body {
  const body: unknown = JSON.parse(template)
  if (typeof body !== 'object' || body === null || Array.isArray(body)) throw new SyntaxError('{ … }')
  return body as Body
}

/** What is wrong with a template, if it is no JSON. */
export function templateError(template: string): string | undefined {
  try {
    readTemplate(template)
    return undefined
  } catch (error) {
    return (error as Error).message
  }
}

function written(body: Body): string {
  return JSON.stringify(body, null, 2)
}
