// What an agent asks while one waits for it to sign in or to open a session: there is no session to show it in.

import { useEffect, useState } from 'react'
import type { Values } from '../../core/form'
import { agents as api, type AgentQuestion } from '../../live/api'
import { QuestionForm } from './elicitation_form'

const LOOK_MS = 700

/** Looks for questions for as long as it is shown. */
export function AgentQuestions({ agent }: { agent: string }) {
  const [questions, setQuestions] = useState<AgentQuestion[]>([])
  const [filled] = useState(() => new Map<string, Values>())
  useEffect(() => {
    const look = () => void api.questions(agent).then((told) => setQuestions(told.questions), () => undefined)
    const timer = setInterval(look, LOOK_MS)
    return () => clearInterval(timer)
  }, [agent])
  return questions.map((asked) => (
    <QuestionForm key={asked.id} pending={asked} filled={filled} past={false} ready send={(action, content) => api.answer(agent, asked.id, action, content)} />
  ))
}
