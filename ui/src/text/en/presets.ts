import type { Schemas } from '@/api/client'

type Kind = 'policy' | 'profile'

export const presets = {
  label: 'Presets',
  question: 'What is there ready-made?',
  answer: (total: number, own: number) =>
    `${total === 1 ? 'One preset makes' : `${total} presets make`} a policy or a profile that only needs devices and hops${
      own === 0 ? '' : own === 1 ? '; one is your own' : `; ${own} are your own`
    }.`,
  hint: 'Using a preset creates an ordinary policy or profile. Nothing refers to the preset afterwards.',
  empty: 'There are no presets.',
  new: 'Preset',
  createTitle: 'New preset',
  category: 'Category',
  categories: {
    streaming: 'Streaming',
    gaming: 'Gaming',
    work: 'Work',
    iot: 'Appliances',
    privacy: 'Privacy',
  } satisfies Record<Schemas['PresetCategory'], string>,
  makes: 'Creates',
  kinds: { policy: 'a policy', profile: 'a profile' } as Record<Kind, string>,
  open: 'left open',
  direct: 'default route',
  use: 'Use',
  useTitle: 'Use it',
  useQuestion: (name: string) => `What does the preset ${name} create?`,
  useAnswer: {
    policy: 'A policy for the devices and hops that you choose. It is active after the next apply.',
    profile: 'A profile with the hops that you choose. Policies and devices can use it then.',
  } as Record<Kind, string>,
  create: { policy: 'Create policy', profile: 'Create profile' } as Record<Kind, string>,
  confirmTitle: {
    policy: (name: string) => `Create the policy ${name}`,
    profile: (name: string) => `Create the profile ${name}`,
  },
  confirmMeans: {
    policy: 'The policy is stored and not active. It takes effect with the next apply.',
    profile: 'The profile changes nothing until a policy, a group or a device uses it.',
  } as Record<Kind, string>,
  template: 'Template',
  templateHint: 'The fields that a policy or profile begins with.',
  builtinHint: 'Built in: it can be changed, but not renamed or deleted.',
  templateLabel: 'Fields (JSON)',
  templateFields: {
    policy: 'The body of POST /routing/policies. What it leaves out is asked for when the preset is used.',
    profile: 'The body of POST /profiles. What it leaves out is asked for when the preset is used.',
  } as Record<Kind, string>,
  deleteAction: 'Delete preset',
  deleteMeans: 'Policies and profiles that were created by it stay as they are.',
}
