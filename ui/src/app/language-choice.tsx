import { Segmented } from '@/components/segmented'
import { useLanguage, useText } from '@/text'

export function LanguageChoice() {
  const text = useText()
  const { language, choose } = useLanguage()
  return (
    <Segmented
      label={text.shell.language}
      value={language}
      options={[
        ['en', 'English'],
        ['de', 'Deutsch'],
      ]}
      onChange={choose}
    />
  )
}
