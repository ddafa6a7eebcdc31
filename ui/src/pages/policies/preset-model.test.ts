import { describe, expect, it } from 'vitest'
import {
  draftOf,
  fieldsOf,
  presetForm,
  presetInput,
  templateError,
  startOf,
  type Preset,
} from './preset-model'

const preset = (template: Partial<Preset['template']>): Preset => ({
  id: 'p',
  created_at: '',
  updated_at: '',
  revision: 1,
  slot: 1,
  origin_node: null,
  name: 'iot',
  description: 'Appliances',
  category: 'iot',
  template: { policy: null, profile: null, ...template },
  builtin: false,
})
const POLICY = { name: 'appliances', priority: 500, source_type: 'device_group', fail_policy: 'fail-closed' }

describe('a preset', () => {
  it('fills in what a policy leaves open', () => {
    const made = preset({ policy: POLICY })
    const use = { ...startOf(made), source_value: 'g1', hops: [{ type: 'vpn' as const, target: 'wg-a' }] }
    expect(fieldsOf('policy', use)).toEqual({
      name: 'appliances',
      priority: 500,
      source_type: 'device_group',
      source_value: 'g1',
      hops: [{ type: 'vpn', target: 'wg-a' }],
    })
    expect(draftOf(made, use)).toMatchObject({
      fail_policy: 'fail-closed',
      source_value: 'g1',
      reject: 'unreachable',
    })
  })
  it('sends no fields of a policy for a profile', () => {
    const use = startOf(preset({ profile: { splitting: true } }))
    expect(fieldsOf('profile', use)).toEqual({ name: 'iot', hops: [] })
  })
  it('keeps fields of a template that the form does not know', () => {
    const form = presetForm(preset({ profile: { name: 'x', later: 1 } }))
    expect(presetInput(form)).toEqual({
      name: 'iot',
      description: 'Appliances',
      category: 'iot',
      template: { policy: null, profile: { name: 'x', later: 1 } },
    })
  })
  it('says what is wrong with a template', () => {
    expect(templateError('{}')).toBeUndefined()
    expect(templateError('{')).toBeTruthy()
    expect(templateError('[]')).toBeTruthy()
  })
})
