// The catalogue of texts: one tree for each language, of the same shape. Texts that the daemon composes come from it.

import { createContext, useContext, useEffect, useState, type ReactNode } from 'react'
import { en } from './en'
import { setFormatLanguage } from './format'

export type Text = typeof en
export type Language = 'en' | 'de'

const STORED = 'gateway.language'

interface Value {
  text: Text
  language: Language
  choose: (language: Language) => void
}

const Context = createContext<Value>({ text: en, language: 'en', choose: () => undefined })

function preferred(): Language {
  const stored = localStorage.getItem(STORED)
  if (stored === 'en' || stored === 'de') return stored
  return navigator.language.toLowerCase().startsWith('de') ? 'de' : 'en'
}

async function load(language: Language): Promise<Text> {
  return language === 'de' ? (await import('./de')).de : en
}

/** Gives the texts of the chosen language to the parts inside it. */
export function Texts({ children }: { children: ReactNode }) {
  const [language, setLanguage] = useState<Language>(preferred)
  const [text, setText] = useState<Text | null>(language === 'en' ? en : null)
  useEffect(() => {
    let current = true
    void load(language).then((loaded) => {
      if (!current) return
      document.documentElement.lang = language
      setFormatLanguage(language)
      setText(loaded)
    })
    return () => {
      current = false
    }
  }, [language])
  const choose = (next: Language) => {
    localStorage.setItem(STORED, next)
    setLanguage(next)
  }
  if (!text) return null
  return <Context.Provider value={{ text, language, choose }}>{children}</Context.Provider>
}

export function useText(): Text {
  return useContext(Context).text
}

export function useLanguage(): Pick<Value, 'language' | 'choose'> {
  return useContext(Context)
}
