import type { Text } from '..'

export const mesh: Text['mesh'] = {
  tab: 'Mesh',
  question: 'Welche Telefone und Laptops sind im Mesh dieses Gateways?',
  off: 'Keine: Der Koordinator des Mesh ist aus.',
  sentence: (online, total) => (total === 0 ? 'Noch keine.' : `${online} von ${total} sind verbunden.`),
  coordinator: 'Koordinator',
  state: 'Zustand',
  states: {
    down: 'aus',
    connecting: 'öffnet seine Listener',
    up: 'bedient seine Knoten',
    needs_login: 'wartet auf eine Anmeldung',
    needs_approval: 'wartet auf eine Freigabe',
    error: 'schlägt fehl',
  },
  url: 'Adresse für Clients',
  faults: 'Fehler',
  settings: 'Seine Einstellungen sind mesh.coordinator.*',
  peers: 'Peers',
  empty:
    'Noch kein Peer ist beigetreten. Erzeuge einen Schlüssel und verbinde ein Telefon oder einen Laptop mit dem üblichen Tailscale-Client.',
  columns: { peer: 'Peer', state: 'Zustand', routes: 'Routen', expiry: 'Schlüssel endet' },
  online: 'verbunden',
  offline: 'weg',
  never: 'nie',
  waiting: (count) => `${count} nicht freigegeben`,
  actionsFor: (name) => `Aktionen für ${name}`,
  remove: 'Entfernen',
  removeTitle: (name) => `${name} aus dem Mesh entfernen?`,
  removeConsequence:
    'Er verliert Koordinator, Relay und alle Peers sofort. Zurück kommt er nur mit einem neuen Schlüssel.',
  routes: {
    title: 'Routen freigeben',
    label: (name) => `Präfixe, die ${name} leiten darf`,
    hint: '0.0.0.0/0 und ::/0 machen ihn zum Ausgang für den ganzen Verkehr anderer Peers.',
    approve: 'Speichern',
    done: (name) => `Routen von ${name} gespeichert.`,
  },
  key: {
    title: 'Peer hinzufügen',
    create: 'Schlüssel erzeugen',
    once: 'Dies wird einmal gezeigt. Das Gateway behält nur einen Hash des Schlüssels.',
    host: 'Auf einem Rechner mit dem Tailscale-Client:',
    copyCommand: 'Befehl kopieren',
    phone:
      'Auf einem Telefon den Server in den Kontoeinstellungen der App eintragen, und den Schlüssel aus dem QR-Code:',
    server: 'Server',
    expires: 'Nimmt Peers auf bis',
    qr: 'QR-Code des Schlüssels',
    fields: {
      reusable: ['Mehr als ein Peer', 'Der Schlüssel gilt weiter, wenn der erste Peer beigetreten ist.'],
      ephemeral: ['Peers entfernen, die weg sind', 'Für Rechner, die kommen und gehen.'],
      expires_in: ['Gültig für, s', 'In dieser Zeit treten Peers mit ihm bei.'],
      tags: [
        'Tags',
        'Einer je Zeile, etwa tag:server. Der eigene Schlüssel eines solchen Peers endet nicht.',
      ],
      usage_limit: ['Zahl der Peers', '0 heißt beliebig viele.'],
    },
  },
}
