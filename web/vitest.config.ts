import { defineConfig } from 'vitest/config'

// Only a test that hangs takes that long, however busy the machine is.
const testTimeout = 120_000

export default defineConfig({
  test: { include: ['test/**/*.test.ts'], environment: 'node', testTimeout },
})
