// A client of a few lines on acp-ai-provider, for the checks of conformance.
//
//     node scripts/provider_client.mjs PACKAGES AGENT
//
// PACKAGES is the folder with the node_modules to use.
import { createRequire } from 'node:module'
import { resolve } from 'node:path'
import { pathToFileURL } from 'node:url'

const [packages, agent] = process.argv.slice(2)
const require = createRequire(pathToFileURL(resolve(packages, 'x.js')))
const { createACPProvider } = require('@mcpc-tech/acp-ai-provider')
const { streamText } = require('ai')

const session = { cwd: process.cwd(), mcpServers: [] }
const provider = createACPProvider({ command: agent, args: [], session })
let failed = false
const { textStream } = streamText({
  model: provider.languageModel(),
  prompt: 'go',
  tools: provider.tools,
  onError: ({ error }) => {
    console.error(error)
    failed = true
  },
})
for await (const piece of textStream) process.stdout.write(piece)
provider.cleanup()
process.exitCode = failed ? 1 : 0
