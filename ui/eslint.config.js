import js from '@eslint/js'
import { createTypeScriptImportResolver } from 'eslint-import-resolver-typescript'
import imports from 'eslint-plugin-import-x'
import a11y from 'eslint-plugin-jsx-a11y'
import hooks from 'eslint-plugin-react-hooks'
import ts from 'typescript-eslint'

/** Texts of other people are text nodes only. */
const TEXT_NODES = {
  selector: "JSXAttribute[name.name='dangerouslySetInnerHTML']",
  message: 'Write text nodes.',
}

/** The layers of the dashboard, lowest first: a file imports from its own layer and from those below. */
const LAYERS = ['text', 'api', 'session', 'components', 'pages', 'app']

/** Tests of components and of the session show them within the others. */
const layers = LAYERS.slice(0, -1).map((layer, index) => ({
  files: [`src/${layer}/**/*.{ts,tsx}`],
  ignores: ['**/*.test.*'],
  rules: {
    '@typescript-eslint/no-restricted-imports': [
      'error',
      {
        patterns: [
          {
            group: LAYERS.slice(index + 1).map((above) => `@/${above}/**`),
            // The catalogue knows the types of what the gateway says.
            allowTypeImports: layer === 'text',
            message: `This is a layer above ${layer}.`,
          },
        ],
      },
    ],
  },
}))

export default ts.config(
  { ignores: ['dist', 'src/api/schema.d.ts', 'src/api/supported.ts'] },
  js.configs.recommended,
  ...ts.configs.strict,
  {
    files: ['src/**/*.{ts,tsx}'],
    plugins: { 'react-hooks': hooks, 'jsx-a11y': a11y, 'import-x': imports },
    settings: {
      ...imports.flatConfigs.typescript.settings,
      'import-x/resolver-next': [createTypeScriptImportResolver()],
    },
    rules: {
      ...hooks.configs.recommended.rules,
      ...a11y.flatConfigs.recommended.rules,
      'import-x/no-cycle': 'error',
      // A region that scrolls can have the focus, so that keys scroll it.
      'jsx-a11y/no-noninteractive-tabindex': ['error', { tags: [], roles: ['tabpanel', 'region'] }],
      'no-restricted-syntax': ['error', TEXT_NODES],
      'max-lines': ['error', 400],
    },
  },
  {
    files: ['src/**/*.{ts,tsx}'],
    ignores: ['**/*.test.*'],
    rules: { 'max-lines-per-function': ['error', { max: 60, skipBlankLines: true, skipComments: true }] },
  },
  {
    // Each of these has a function of more than 60 lines. The list gets no longer.
    files: [
      'src/components/edit.tsx',
      'src/components/hosts/{host-adopter,mac-field}.tsx',
      'src/components/picker.tsx',
      'src/components/tunnel-import/{file-drop.tsx,use-import.ts}',
      'src/pages/dns/log/{brush,filter-bar,log-table}.tsx',
      'src/pages/network/timeline-section.tsx',
      'src/pages/paths/tunnel-past.tsx',
      'src/pages/policies/order-table.tsx',
      'src/pages/system/{import,wipe}.tsx',
      'src/pages/wizard/{admin,failure,wires}.tsx',
      'src/pages/wizard/{ground-checks,proof}.ts',
    ],
    rules: { 'max-lines-per-function': ['error', { max: 80, skipBlankLines: true, skipComments: true }] },
  },
  {
    // These draw more than rows of cells: rows that move, cells of a matrix, and rows in view only. The list gets no longer.
    files: ['src/pages/**/*.tsx'],
    ignores: [
      'src/pages/dns/log/log-table.tsx',
      'src/pages/policies/matrix-table.tsx',
      'src/pages/policies/order-table.tsx',
    ],
    rules: {
      'no-restricted-syntax': [
        'error',
        TEXT_NODES,
        {
          selector: "JSXOpeningElement[name.name='table']",
          message: 'Use Table or DataTable of the components.',
        },
      ],
    },
  },
  ...layers,
  {
    // Parts of journeys run in the page.
    files: ['journeys/**/*.js'],
    languageOptions: {
      globals: {
        URL: 'readonly',
        console: 'readonly',
        document: 'readonly',
        fetch: 'readonly',
        localStorage: 'readonly',
        PerformanceObserver: 'readonly',
        process: 'readonly',
        requestAnimationFrame: 'readonly',
        setTimeout: 'readonly',
        window: 'readonly',
      },
    },
  },
  {
    files: ['scripts/**/*.js', '*.config.js', 'public/*.js'],
    languageOptions: {
      globals: {
        URL: 'readonly',
        process: 'readonly',
        console: 'readonly',
        document: 'readonly',
        localStorage: 'readonly',
      },
    },
  },
)
