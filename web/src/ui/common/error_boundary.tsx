// An error boundary: when one part of the page cannot be drawn, the others stay as they are.

import { Component, type ReactNode } from 'react'
import { Icon } from './icons'

interface Props {
  /** What people call it. */
  name: string
  /** What it draws: when that changes, a part that failed is drawn again. */
  of?: unknown
  /** The class of the element that replaces it. */
  place?: string
  /** Called in an effect once it has failed. */
  onFail?: () => void
  children: ReactNode
}

export class ErrorBoundary extends Component<Props, { failed: boolean }> {
  override state = { failed: false }

  static getDerivedStateFromError(): { failed: boolean } {
    return { failed: true }
  }

  override componentDidCatch(): void {
    this.props.onFail?.()
  }

  override componentDidUpdate({ of }: Props): void {
    if (this.state.failed && of !== this.props.of) this.setState({ failed: false })
  }

  override render(): ReactNode {
    const { name, place = '', children } = this.props
    if (!this.state.failed) return children
    return (
      <div className={`failedpart ${place}`} role="alert">
        <Icon name="alert" /> <span>The {name} could not be displayed.</span>
        <button type="button" onClick={() => this.setState({ failed: false })}>Try again</button>
      </div>
    )
  }
}
