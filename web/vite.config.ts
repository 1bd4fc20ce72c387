import { readFileSync } from 'node:fs'
import react from '@vitejs/plugin-react'
import { defineConfig, type Plugin } from 'vite'

const FONTS = { 'Inter': 'inter', 'JetBrains Mono': 'jetbrains-mono' }

/** Fonts may be passed on only with their licence. */
function fontLicences(): Plugin {
  const texts = Object.entries(FONTS).map(([name, folder]) => `${name}\n\n${readFileSync(`node_modules/@fontsource-variable/${folder}/LICENSE`, 'utf8')}`)
  return {
    name: 'font-licences',
    generateBundle() {
      this.emitFile({ type: 'asset', fileName: 'font-licences.txt', source: texts.join('\n\n') })
    },
  }
}

// Everything is a file of its own with a hash in its name: the policy of the page allows no inline
// script, and the server may tell browsers to keep the assets for ever.
export default defineConfig({
  plugins: [react(), fontLicences()],
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
