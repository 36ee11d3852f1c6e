import { useEffect, useState } from 'preact/hooks';
import { dollarsOf } from '../../../src/library/projection/standing.ts';
import type { BudgetLine } from '../../../src/library/troupe.ts';
import { dollars, short, whole } from '../shared/format.ts';
import { Go } from '../shared/go.tsx';
import { api } from '../state/api.ts';
import { shown } from '../state/live.ts';
import { queues } from '../state/inbox.ts';
import { conversation } from '../state/route.ts';
import { priceOf } from '../state/turn-figures.ts';

/** Spend: dollars at the present prices, else tokens; and the budget of the conversation. */
export function HeaderSpend() {
  const [line, setLine] = useState<BudgetLine | null>(null);
  const id = conversation.value;
  // Asked with the other polled data, and as often.
  const tick = queues.value;
  useEffect(() => {
    if (id === null || tick === null) return;
    api.budgets(id).then(
      ({ budgets }) => setLine(budgets.find(({ scope }) => scope === 'conversation') ?? null),
      () => setLine(null),
    );
  }, [id, tick]);
  const { totals, agents = {} } = shown.value ?? {};
  const tokens = totals?.tokens;
  if (!tokens || tokens.input + tokens.output === 0) return null;
  const usd = dollarsOf(Object.values(agents), priceOf);
  const cap = line?.cap.usd ?? null;
  return (
    <Go
      class="chip"
      to={{ list: 'turns', sort: '-cost', kind: '', by: '', problems: false, q: '' }}
      title={`${whole(tokens.input)} tokens in, ${whole(tokens.output)} out`}
    >
      {usd === null ? `${short(tokens.input + tokens.output)} tok` : dollars(line?.spent.usd || usd)}
      {cap !== null && ` of ${dollars(cap)}`}
    </Go>
  );
}
