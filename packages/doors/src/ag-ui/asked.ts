import type { Event, EventOf } from '../troupe.ts';

/** What people were asked in a conversation. Owns which of it is open, and which call a request for approval is about. */
export class Asked {
  /** Ids of the questions and requests whose end was not told. */
  readonly open = new Set<string>();
  readonly #calls = new Map<string, string>();
  readonly #questions = new Map<string, string>();
  readonly #repliedTo = new Set<string>();

  callOf(request: string): string | undefined {
    return this.#calls.get(request);
  }

  /** Whether people were asked to approve the call. */
  isAbout(call: string): boolean {
    return [...this.#calls.values()].includes(call);
  }

  /** Whether the answer is a reply to the question, and so a message itself. */
  isReply({ body }: EventOf<'question.answered'>): boolean {
    return this.#repliedTo.has(this.#questions.get(body.question) ?? '');
  }

  /** `isHere`: it is in the conversation itself. `call`: the one that it requests approval for. */
  note(event: Event, { isHere, call }: { isHere: boolean; call: string | undefined }): void {
    if (event.kind === 'message' && event.replyTo !== undefined) this.#repliedTo.add(event.replyTo);
    if (event.kind === 'question') {
      this.#questions.set(event.body.question, event.id);
      if (isHere) this.open.add(event.body.question);
    }
    if (event.kind === 'approval.requested') {
      if (call !== undefined) this.#calls.set(event.body.request, call);
      if (isHere) this.open.add(event.body.request);
    }
    this.open.delete(endedBy(event) ?? '');
  }
}

/** Id of the question or the request that an event ends. */
export function endedBy(event: Event): string | null {
  if (event.kind === 'question.answered') return event.body.question;
  return event.kind === 'approval.decided' ? event.body.request : null;
}
