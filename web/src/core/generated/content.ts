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
  mime_type: string
  uri?: string | null
}

export interface Audio extends Part {
  type: 'audio'
  data: string
  mime_type: string
}

export interface ResourceLink extends Part {
  type: 'resource_link'
  uri: string
  name: string
  mime_type?: string | null
  title?: string | null
  description?: string | null
  size?: number | null
}

export interface Resource extends Part {
  type: 'resource'
  uri: string
  content?: string | null
  blob?: string | null
  mime_type?: string | null
  resource_meta?: Json | null
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
  new_text: string
  old_text?: string | null
  meta?: Json | null
  operation?: string | null
  old_path?: string | null
  patch?: string | null
  file_type?: string | null
  mime_type?: string | null
  replaces?: string | null
}

export interface TerminalItem {
  type: 'terminal'
  terminal_id: string
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
