import { useEffect, useState } from 'preact/hooks';
import type { BudgetLine } from '../../../src/library/troupe.ts';
import { dollars, short, whole } from '../shared/format.ts';
import { Go } from '../shared/go.tsx';
import { api } from '../state/api.ts';
import { shown } from '../state/live.ts';
import { queues } from '../state/inbox.ts';
import { conversation } from '../state/route.ts';

/** Spend: tokens as vendors report them, and dollars if a budget counts them. */
export function HeaderSpend() {
  const [line, setLine] = useState<BudgetLine | null>(null);
  const id = conversation.value;
  // Refreshes at the same interval as the other polled data.
  const tick = queues.value;
  useEffect(() => {
    if (id === null) return;
    api.budgets(id).then(
      ({ budgets }) => setLine(budgets.find(({ scope }) => scope === 'conversation') ?? null),
      () => setLine(null),
    );
  }, [id, tick]);
  const tokens = shown.value?.totals.tokens;
  if (!tokens || tokens.input + tokens.output === 0) return null;
  const { spent, cap } = line ?? {};
  return (
    <Go
      class="chip"
      to={{ list: 'turns', sort: '-cost', kind: '', by: '', problems: false, q: '' }}
      title={`${whole(tokens.input)} tokens in, ${whole(tokens.output)} out`}
    >
      {short(tokens.input + tokens.output)} tok
      {spent &&
        spent.usd > 0 &&
        `, ${dollars(spent.usd)}${cap?.usd == null ? '' : ` of ${dollars(cap.usd)}`}`}
    </Go>
  );
}
