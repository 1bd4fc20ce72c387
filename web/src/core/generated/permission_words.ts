// Generated from src/dragoman/session/permission_options.py by `make gen`: do not edit.

export const WORDS = new Map([
  ['allow_once', 'Allow once'], ['allow_always', 'Always allow'], ['reject_once', 'Reject'],
  ['reject_always', 'Always reject'],
])

export const SAME = new Map([
  ['allow_once', ['allow once', 'allow']], ['allow_always', ['always allow', 'allow always']],
  ['reject_once', ['reject', 'reject once']], ['reject_always', ['always reject', 'reject always']],
])

export const FOR_THE_SESSION = 'Allow for this session'
export const UNKNOWN = 'Unknown answer'
export const UNCLEAR = 'Unclear answer'

export const LONGEST = 240
export const LABEL_START = 160
export const LABEL_END = 60
export const MOST_READ = 2000
export const BLANKS = ' \t\r\n'

export const YES: ReadonlySet<string> = new Set([
  'accept', 'accepted', 'agree', 'allow', 'allowed', 'approve', 'approved', 'authorise',
  'authorised', 'authorize', 'authorized', 'confirm', 'enable', 'grant', 'ok', 'okay', 'permit',
  'sure', 'trust', 'y', 'yeah', 'yep', 'yes',
])

export const MAYBE_YES: ReadonlySet<string> = new Set([
  'apply', 'continue', 'execute', 'go', 'proceed', 'run',
])

export const NO: ReadonlySet<string> = new Set([
  'abort', 'block', 'cancel', 'decline', 'declined', 'denied', 'deny', 'disallow', 'disapprove',
  'dismiss', 'forbid', 'n', 'nevermind', 'no', 'none', 'nope', 'nothing', 'prevent', 'refuse',
  'refused', 'reject', 'rejected', 'skip',
])

export const NOT: ReadonlySet<string> = new Set([
  'cannot', 'cant', 'dont', 'never', 'not', 'stop', 'wont',
])

export const ASKING: ReadonlySet<string> = new Set([
  'approval', 'ask', 'asked', 'asking', 'confirmation', 'prompt', 'prompting', 'prompts',
  'questions', 'remind',
])

export const LOOKALIKES = new Map([
  ['\u0430', 'a'], ['\u0435', 'e'], ['\u043e', 'o'], ['\u0440', 'p'], ['\u0441', 'c'],
  ['\u0443', 'y'], ['\u0445', 'x'], ['\u0456', 'i'], ['\u0458', 'j'], ['\u0455', 's'],
  ['\u0501', 'd'], ['\u0578', 'n'], ['\u03b9', 'i'], ['\u03bf', 'o'], ['\u03b1', 'a'],
  ['\u03bd', 'v'], ['\u0410', 'A'], ['\u0412', 'B'], ['\u0415', 'E'], ['\u041a', 'K'],
  ['\u041c', 'M'], ['\u041d', 'H'], ['\u041e', 'O'], ['\u0420', 'P'], ['\u0421', 'C'],
  ['\u0422', 'T'], ['\u0425', 'X'], ['\u0391', 'A'], ['\u0392', 'B'], ['\u0395', 'E'],
  ['\u0399', 'I'], ['\u039a', 'K'], ['\u039d', 'N'], ['\u039f', 'O'], ['\u03a4', 'T'],
])

export const ONCE = /\b(?:once|one time|this time|just this|only this|just now)\b/
export const LASTING = /\b(?:always|forever|permanent|permanently|every time|from now on|all future|remember|never)\b/
export const THE_SESSION = /\bsession\b|\b(?:this|current|the) sessions\b|\b(?:this|the|current|whole|entire|per|for) (?:[a-z]+ )?(?:conversation|chat)\b|\b(?:in|during|within|of) (?:conversation|chat)\b|\b(?:until|till|before) (?:[a-z]+ ){0,3}(?:exit|quit|restart|close|shutdown)(?:s|d|ed)?\b/
export const FOR_A_WHILE = /\b(?:this|the|current|whole|entire|per|for) (?:[a-z]+ )?turn\b|\b(?:today|temporary|temporarily)\b/

export const SEPARATORS = /[\x00-\x20!-&(-\/:-@\[-`{-~\u00b7\u2010-\u2015\u2022\u2026\u2028\u2029]+/g
