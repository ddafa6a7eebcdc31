import { fileURLToPath } from 'node:url'
import react from '@vitejs/plugin-react'
import { defineConfig } from 'vitest/config'

/** Address of a running daemon, for `npm run dev`. */
const daemon = process.env.GATEWAY_ADDR ?? 'http://127.0.0.1:8080'

export default defineConfig({
  plugins: [react()],
  resolve: { alias: { '@': fileURLToPath(new URL('./src', import.meta.url)) } },
  build: {
    target: 'es2022',
    // The daemon sends all files itself; data in the style sheet would need another content security policy.
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
    rollupOptions: { input: ['index.html', 'docs.html'] },
  },
  server: {
    proxy: {
      '/api': {
        target: daemon,
        changeOrigin: true,
        // The daemon compares the origin of a request with its host.
        configure: (proxy) => proxy.on('proxyReq', (request) => request.setHeader('origin', daemon)),
      },
    },
  },
  test: {
    pool: 'threads',
    environment: 'jsdom',
    // Most of the time of a run went into a document for each file.
    isolate: false,
    include: ['src/**/*.test.{ts,tsx}'],
    restoreMocks: true,
    // Other suites take the processors meanwhile.
    testTimeout: 120_000,
    hookTimeout: 120_000,
  },
})
