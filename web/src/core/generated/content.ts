// Generated from src/dragoman/session/content.py by `make gen`: do not edit.

export type Json = Record<string, unknown>

export interface Part {
  annotations?: Json | null
  meta?: Json | null
}

export interface Text extends Part {
  type: 'text'
  text: string
}

export interface Image extends Part {
  type: 'image'
  data: string
  mimeType: string
  uri?: string | null
}

export interface Audio extends Part {
  type: 'audio'
  data: string
  mimeType: string
}

export interface ResourceLink extends Part {
  type: 'resource_link'
  uri: string
  name: string
  mimeType?: string | null
  title?: string | null
  description?: string | null
  size?: number | null
}

export interface Resource extends Part {
  type: 'resource'
  uri: string
  content?: string | null
  blob?: string | null
  mimeType?: string | null
  resourceMeta?: Json | null
}

export interface UnknownContent extends Part {
  type: 'unknown'
  kind: string
  raw: string
}

export interface ContentItem {
  type: 'content'
  content: Content
  meta?: Json | null
}

export interface Diff {
  type: 'diff'
  path: string
  newText: string
  oldText?: string | null
  meta?: Json | null
  operation?: string | null
  oldPath?: string | null
  patch?: string | null
  fileType?: string | null
  mimeType?: string | null
  replaces?: string | null
}

export interface TerminalItem {
  type: 'terminal'
  terminalId: string
  meta?: Json | null
}

export interface UnknownItem {
  type: 'unknown'
  kind: string
  raw: string
}

export interface Location {
  path: string
  line?: number | null
  meta?: Json | null
}

export type Content = Text | Image | Audio | ResourceLink | Resource | UnknownContent

export type ToolContent = ContentItem | Diff | TerminalItem | UnknownItem
