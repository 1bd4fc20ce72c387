// Code with colours, for the languages people meet most; the rest is plain text. The result has no
// markup but spans with classes.

import hljs from 'highlight.js/lib/core'
import bash from 'highlight.js/lib/languages/bash'
import c from 'highlight.js/lib/languages/c'
import cpp from 'highlight.js/lib/languages/cpp'
import csharp from 'highlight.js/lib/languages/csharp'
import css from 'highlight.js/lib/languages/css'
import diff from 'highlight.js/lib/languages/diff'
import go from 'highlight.js/lib/languages/go'
import ini from 'highlight.js/lib/languages/ini'
import java from 'highlight.js/lib/languages/java'
import javascript from 'highlight.js/lib/languages/javascript'
import json from 'highlight.js/lib/languages/json'
import kotlin from 'highlight.js/lib/languages/kotlin'
import markdown from 'highlight.js/lib/languages/markdown'
import php from 'highlight.js/lib/languages/php'
import python from 'highlight.js/lib/languages/python'
import ruby from 'highlight.js/lib/languages/ruby'
import rust from 'highlight.js/lib/languages/rust'
import shell from 'highlight.js/lib/languages/shell'
import sql from 'highlight.js/lib/languages/sql'
import swift from 'highlight.js/lib/languages/swift'
import typescript from 'highlight.js/lib/languages/typescript'
import xml from 'highlight.js/lib/languages/xml'
import yaml from 'highlight.js/lib/languages/yaml'
import { escapeHtml } from './html'

const LANGUAGES = {
  bash, c, cpp, csharp, css, diff, go, ini, java, javascript, json, kotlin, markdown, php, python,
  ruby, rust, shell, sql, swift, typescript, xml, yaml,
}
for (const [name, language] of Object.entries(LANGUAGES)) hljs.registerLanguage(name, language)
hljs.registerAliases(['toml'], { languageName: 'ini' })

// Longer than this, colours cost more than they are worth; for a long line they cost its square.
const MAX_CHARS = 10_000
const MAX_LINE = 1_000

export function highlight(code: string, language: string, most = MAX_CHARS): string {
  if (code.length > most || !hljs.getLanguage(language) || hasLongLine(code)) return escapeHtml(code)
  return hljs.highlight(code, { language, ignoreIllegals: true }).value
}

function hasLongLine(code: string): boolean {
  return code.split('\n').some((line) => line.length > MAX_LINE)
}
