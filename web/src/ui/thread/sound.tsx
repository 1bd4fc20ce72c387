// Sound, decoded when someone wants to hear it. Not an audio element: the page may load no media.

import { useEffect, useRef, useState } from 'react'
import { bytesOf, isBase64 } from '../../core/text/base64'
import { duration } from '../../core/text/format'
import { Icon } from '../common/icons'
import { Plain } from '../common/plain_text'
import { shell } from '../shell/shell'

export function Sound({ data, mime }: { data: string; mime: string }) {
  const context = useRef<AudioContext | null>(null)
  const [seconds, setSeconds] = useState<number | null>(null)
  const stop = () => {
    void context.current?.close()
    context.current = null
    setSeconds(null)
  }
  useEffect(() => stop, [])
  const play = async () => {
    const audio = new AudioContext()
    context.current = audio
    try {
      const source = audio.createBufferSource()
      source.buffer = await audio.decodeAudioData(bytesOf(data).buffer)
      source.connect(audio.destination)
      source.onended = stop
      source.start()
      setSeconds(source.buffer.duration)
    } catch {
      stop()
      shell.say('This audio could not be played.', true)
    }
  }
  if (!isBase64(data)) return <p className="quiet">Unreadable audio.</p>
  return (
    <div className="chip">
      {seconds === null
        ? <button type="button" onClick={() => void play()}><Icon name="play" /> Play</button>
        : <button type="button" onClick={stop}><Icon name="stop" /> Stop</button>}
      <small><Plain text={mime} />{seconds !== null && `, ${duration(seconds)}`}</small>
    </div>
  )
}
