import react from '@vitejs/plugin-react'
import { defineConfig } from 'vite'

// The viewer of an exported session: one script and one style sheet, which the export puts into its
// file. It is built beside the page, after it.
export default defineConfig({
  plugins: [react()],
  define: { 'process.env.NODE_ENV': '"production"' },
  publicDir: false,
  build: {
    outDir: '../src/dragoman/web/static/viewer',
    emptyOutDir: true,
    sourcemap: false,
    assetsInlineLimit: 1_000_000,
    target: 'es2022',
    chunkSizeWarningLimit: 1200,
    lib: { entry: 'src/viewer.tsx', formats: ['iife'], name: 'viewer', fileName: () => 'viewer.js', cssFileName: 'viewer' },
  },
})
