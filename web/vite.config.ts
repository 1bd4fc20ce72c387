import react from '@vitejs/plugin-react'
import { defineConfig } from 'vite'

// Everything is a file of its own with a hash in its name: the policy of the page allows no inline
// script, and the server may tell browsers to keep the assets for ever.
export default defineConfig({
  plugins: [react()],
  base: './',
  build: {
    outDir: '../src/dragoman/web/static',
    emptyOutDir: true,
    sourcemap: false,
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
    target: 'es2022',
    chunkSizeWarningLimit: 700,
  },
  worker: { format: 'es' },
  server: { proxy: { '/api': 'http://127.0.0.1:8642' } },
})
