import type { EventDraft, TodosBody } from '../../events/index.ts';

export interface Corrections {
  /** In this turn. */
  all: number;
  /** Since something changed. */
  idle: number;
}

/**
 * The corrections of a turn, from what it has produced. Something changed where the list is another one, or where a call
 * has done something; that the list was written once more says nothing.
 */
export function countCorrections(outputs: readonly EventDraft[], before: TodosBody | null): Corrections {
  let all = 0;
  let idle = 0;
  let list = keyOf(before);
  let corrected = list;
  let isChanged = false;
  for (const draft of outputs) {
    if (draft.kind === 'todos') list = keyOf(draft.body);
    else if (draft.kind === 'tool.result') isChanged ||= isWork(draft.body);
    else if (draft.kind === 'injection' && draft.body.oneStep) {
      idle = isChanged || list !== corrected ? 1 : idle + 1;
      all += 1;
      corrected = list;
      isChanged = false;
    }
  }
  return { all, idle: isChanged || list !== corrected ? 0 : idle };
}

function isWork({ name, outcome }: { name: string; outcome: string }): boolean {
  return outcome === 'done' && name !== 'todo';
}

function keyOf(list: TodosBody | null): string {
  return JSON.stringify(list && [list.items.map(({ text, status }) => [text, status]), list.later]);
}
