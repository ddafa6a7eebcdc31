import type { Text } from '..'
import { editor, lists } from './dns-lists'
import { privacy } from './dns-privacy'
import { upstreams } from './dns-upstreams'
import { zones } from './dns-zones'

/** Tausender getrennt: `18 204`. */
const group = (n: number) => String(n).replace(/\B(?=(\d{3})+(?!\d))/g, ' ')
const count = (n: number, one: string, many: string) => (n === 1 ? `1 ${one}` : `${group(n)} ${many}`)

export const dns: Text['dns'] = {
  label: 'DNS & Privatsphäre',
  editor,
  lists,
  zones,
  upstreams,
  privacy,
  log: {
    label: 'Anfragen',
    question: 'Warum wurde diese Seite gesperrt, und wer hat nach ihr gefragt?',
    made: (since, until, clients, queries) =>
      `${until === null ? `Seit ${since}` : `Von ${since} bis ${until}`} ${clients === 1 ? 'stellte 1 Client' : `stellten ${group(clients)} Clients`} ${count(queries, 'Anfrage', 'Anfragen')}.`,
    noneBlocked: 'Keine wurde gesperrt.',
    blockedCount: (blocked) => (blocked === 1 ? '1 wurde gesperrt' : `${group(blocked)} wurden gesperrt`),
    by: (reason, n) => {
      const words: Record<string, string> = {
        rule: n === 1 ? 'durch eine Regel' : 'durch Regeln',
        blocklist: 'durch die Sperrliste',
        threat_feed: 'durch Bedrohungslisten',
        canary: 'als Canary-Name',
        rewrite: 'durch eine Umschreibung',
        none: 'ohne Treffer',
      }
      return `${group(n)} ${words[reason] ?? `durch ${reason}`}`
    },
    live: 'Live',
    frozen: 'Angehalten',
    rangeEnds: 'Der gewählte Zeitraum hat ein Ende, darin erscheint nichts Neues.',
    download: 'Die gezeigten Einträge herunterladen',
    newRows: (n, more) => (more ? `Mehr als ${group(n)} neue` : `${group(n)} neue`),
    empty:
      'Das Protokoll enthält keine Anfragen. Geräte, deren Privatsphäre-Klasse kein Protokoll führt, erscheinen hier nicht.',
    noMatch: 'Keine der geladenen Anfragen passt zu den Filtern.',
    older: 'Ältere',
    searched: (time, loaded, shown, end) =>
      `${time === null ? 'Nichts ist geladen.' : `Durchsucht bis ${time}: ${group(shown)} von ${count(loaded, 'geladenen Anfrage', 'geladenen Anfragen')} gezeigt.`} ${
        end ? 'Das Protokoll enthält nichts Älteres.' : 'Älteres wurde noch nicht gelesen.'
      }`,
    most: (n) => `Die Seite hält ${group(n)} Anfragen im Speicher. Ältere ersetzen die neuesten.`,
    lost: (n) =>
      `${n === 1 ? '1 Eintrag ging' : `${group(n)} Einträge gingen`} seit dem Start verloren, weil sie schneller kamen, als sie geschrieben werden konnten.`,
    onlyLoaded: (filters, loaded) =>
      `${filters.join(', ')}: von dieser Seite auf ${count(loaded, 'geladene Anfrage', 'geladene Anfragen')} angewandt, nicht auf das ganze Protokoll.`,
    chart: (from, to, queries, blocked, most) =>
      `Anfragen von ${from} bis ${to}: ${group(queries)}, davon ${group(blocked)} gesperrt, höchstens ${group(most)} je Balken. Durch Ziehen wird ein Zeitraum gewählt; der Zeitfilter tut dasselbe mit der Tastatur.`,
    brushHint: 'geladene Anfragen; ziehen wählt einen Zeitraum',
    domain: 'Domain',
    domainHint: 'Domain oder ein Teil davon',
    time: 'Zeit',
    filters: {
      domain: 'Domain',
      client: 'Client',
      status: 'Ergebnis',
      reason: 'Treffer',
      list: 'Liste oder Regel',
      type: 'Typ',
      upstream: 'Upstream',
      cached: 'Aus dem Cache',
      slower: 'Langsamer als',
      from: 'Von',
      to: 'Bis',
    },
    removeFilter: (name) => `Filter entfernen: ${name}`,
    clear: 'Filter entfernen',
    range: (from, to) => (from === null ? `bis ${to ?? ''}` : `${from} bis ${to ?? 'jetzt'}`),
    last: (minutes) =>
      minutes < 60
        ? `letzte ${minutes} min`
        : minutes === 1440
          ? 'letzter Tag'
          : minutes === 60
            ? 'letzte Stunde'
            : `letzte ${minutes / 60} h`,
    from: 'Von',
    to: 'bis',
    set: 'Anwenden',
    columns: {
      time: 'Zeit',
      client: 'Client',
      question: 'Frage',
      type: 'Typ',
      verdict: 'Ergebnis',
      because: 'Grund',
      answered: 'Antwort von',
      took: 'Dauer',
    },
    statuses: {
      allowed: 'Erlaubt',
      blocked: 'Gesperrt',
      cached: 'Aus dem Cache',
      rewritten: 'Umgeschrieben',
      forwarded: 'Weitergeleitet',
      refused: 'Abgelehnt',
      error: 'Fehler',
    },
    reasons: {
      rule: 'Filterregel',
      allowlist: 'Erlaubnisliste',
      blocklist: 'Sperrliste',
      threat_feed: 'Bedrohungsliste',
      rewrite: 'Umschreibung',
      canary: 'Canary-Name',
      none: 'Kein Treffer',
    },
    reasonOf: (reason, name) => {
      const words: Record<string, string> = {
        rule: 'Regel',
        allowlist: 'Erlaubnisliste',
        blocklist: 'Sperrliste',
        threat_feed: 'Bedrohungsliste',
        rewrite: 'Umschreibung',
        canary: 'Canary-Name',
      }
      return `${words[reason] ?? reason} ${name}`.trim()
    },
    noRule: 'keine Regel',
    unknownClient: 'unbekannt',
    noClient: 'nicht protokolliert',
    fromCache: 'Cache',
    notAsked: 'nicht gefragt',
    local: 'lokal',
    noAnswer: 'keine Antwort',
    slow: 'langsam',
    actionsFor: (name) => `Aktionen für ${name}`,
    thisName: (verb) => (verb === 'allow' ? 'Diesen Namen erlauben' : 'Diesen Namen sperren'),
    domainAndBelow: (verb, domain) =>
      verb === 'allow' ? `${domain} und alles darunter erlauben` : `${domain} und alles darunter sperren`,
    onlyDevice: (verb, device) =>
      verb === 'allow' ? `Nur für ${device} erlauben` : `Nur für ${device} sperren`,
    done: (verb, name, below) =>
      `${name}${below ? ' und alle Namen darunter sind' : ' ist'} jetzt ${verb === 'allow' ? 'erlaubt' : 'gesperrt'}.`,
    why: 'Warum',
    direct: {
      button: 'Direkt für 10 min',
      sentence: (device, name, minutes) =>
        `${device} erreicht ${name} für ${minutes} min über die Standardroute, an seiner Richtlinie vorbei. Server sehen dann die Adresse des Uplinks.`,
      stillFiltered: 'Der Filter sperrt den Namen weiterhin; erlauben Sie ihn auch dort.',
      reason: 'Begründung',
      done: (name) => `Die Ausnahme für ${name} ist aktiv.`,
    },
    facts: {
      rule: 'Regel',
      list: 'Liste',
      through: 'Name, der passte',
      upstream: 'Upstream',
      rcode: 'Antwortcode',
      ede: 'Erweiterter Fehler',
      dnssec: 'DNSSEC',
      proto: 'Übertragung',
      took: 'Dauer',
      time: 'Zeit',
      id: 'Eintrag',
      answers: (n) => (n === 0 ? 'Keine Einträge in der Antwort' : n === 1 ? 'Antwort' : `${n} Antworten`),
    },
    validated: 'geprüft',
    notValidated: 'nicht geprüft',
    protocols: { plain: 'unverschlüsselt', dot: 'DNS über TLS', doh: 'DNS über HTTPS' },
    sameName: 'Alle Anfragen nach diesem Namen',
    sameClient: 'Alle Anfragen dieses Clients',
    sameList: 'Alles, was diese Regel oder Liste traf',
  },
}
