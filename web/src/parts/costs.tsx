import { useEffect, useState } from 'preact/hooks';
import type { CostsAnswer } from '../../../src/http/costs.ts';
import type { BudgetLine } from '../../../src/library/troupe.ts';
import { Choice } from '../shared/choice.tsx';
import { dollars, messageOf, percent, plural, short, whole } from '../shared/format.ts';
import { Go } from '../shared/go.tsx';
import { Skeleton } from '../shared/skeleton.tsx';
import { api } from '../state/api.ts';
import { PERIODS } from '../state/inbox.ts';
import { go, type Route, route } from '../state/route.ts';
import { nameOf } from '../state/selection.ts';
import '../style/home.css';
import '../style/costs.css';

const PERIOD_WORDS = { day: 'Today', week: '7 days', month: '30 days' } as const;
const AGAIN_MS = 200;
const REFRESH_MS = 15_000;

type CostGroup = CostsAnswer['total'];
type Read = { answer: CostsAnswer; budgets: readonly BudgetLine[] } | { problem: string } | null;

/** Start of the period. Days begin in UTC, as on the server. */
function startOf(period: keyof typeof PERIOD_WORDS): number {
  const today = Date.now() - (Date.now() % PERIODS.day);
  return today + PERIODS.day - PERIODS[period];
}

/** What all conversations cost: by agent, model, person and day, and for which purpose. */
export function Costs() {
  const { since } = route.value;
  const period = since in PERIOD_WORDS ? (since as keyof typeof PERIOD_WORDS) : 'day';
  const [read, setRead] = useState<Read>(null);
  useEffect(() => {
    let timer: ReturnType<typeof setTimeout> | undefined;
    let isOver = false;
    setRead(null);
    async function refresh(): Promise<void> {
      const [answer, budgets] = await Promise.allSettled([api.costs(startOf(period)), api.allBudgets()]);
      if (isOver) return;
      if (answer.status === 'rejected') setRead({ problem: messageOf(answer.reason) });
      else {
        const lines = budgets.status === 'fulfilled' ? budgets.value.budgets : [];
        setRead({ answer: answer.value, budgets: lines });
      }
      const isMore = answer.status === 'fulfilled' && answer.value.unread > 0;
      timer = setTimeout(() => void refresh(), isMore ? AGAIN_MS : REFRESH_MS);
    }
    void refresh();
    return () => {
      isOver = true;
      clearTimeout(timer);
    };
  }, [period]);
  return (
    <main class="home costs" aria-label="Costs">
      <header class="home-top">
        <h1>Costs</h1>
        <Choice
          label="Period"
          of={Object.entries(PERIOD_WORDS)}
          value={period}
          onChange={(to) => go({ since: to }, { replace: true })}
        />
      </header>
      {read === null ? (
        <Skeleton />
      ) : 'problem' in read ? (
        <p class="problem">{read.problem}</p>
      ) : (
        <Shown answer={read.answer} budgets={read.budgets} period={period} />
      )}
    </main>
  );
}

function Shown({
  answer,
  budgets,
  period,
}: {
  answer: CostsAnswer;
  budgets: readonly BudgetLine[];
  period: string;
}) {
  const { total, unread } = answer;
  const costliest = { view: '' as const, order: 'costliest', since: period };
  return (
    <>
      <p>
        {total.calls === 0 ? (
          'No model was called. '
        ) : (
          <>
            <b class="costs-total">{money(total)}</b> for {plural(total.calls, 'model call')}; the cache saved{' '}
            {dollars(total.saved)}.{' '}
          </>
        )}
        {total.unknown > 0 && `What ${whole(total.unknown)} calls cost is not known. `}
        {unread > 0 && <span role="status">Counting: {whole(unread)} conversations left.</span>}
      </p>
      {budgets.length > 0 && <Budgets lines={budgets} />}
      <Table
        name="Agent"
        groups={answer.agents}
        titleOf={nameOf}
        to={({ name }) => ({ ...costliest, agent: name })}
      />
      <Table name="Model" groups={answer.models} />
      <Table name="Person" groups={answer.people} to={({ name }) => ({ ...costliest, owner: name })} />
      <Table name="Day" groups={answer.days} />
    </>
  );
}

interface TableProps {
  name: string;
  groups: readonly CostGroup[];
  /** What people call the group of an id. */
  titleOf?: (id: string) => string;
  /** Link to the group's conversations. */
  to?: (group: CostGroup) => Partial<Route>;
}

function Table({ name, groups, titleOf = String, to }: TableProps) {
  if (groups.length === 0) return null;
  return (
    <div class="costs-scroll">
      <table>
        <thead>
          <tr>
            <th scope="col">{name}</th>
            <th scope="col">Cost</th>
            <th scope="col">Calls</th>
            <th scope="col">New tokens</th>
            <th scope="col">From cache</th>
            <th scope="col">Written</th>
            <th scope="col">Summaries</th>
            <th scope="col">Failed calls</th>
          </tr>
        </thead>
        <tbody>
          {groups.map((group) => (
            <tr key={group.name}>
              <th scope="row" title={group.name}>
                <Title text={group.title ?? titleOf(group.name)} to={to?.(group)} />
              </th>
              <td>{money(group)}</td>
              <td>{whole(group.calls)}</td>
              <td>{short(group.fresh)}</td>
              <td title={`${whole(group.cached)} tokens`}>
                {percent(group.cached, group.cached + group.fresh)}
              </td>
              <td>{short(group.output)}</td>
              <td>{group.summaries > 0 ? dollars(group.summaries) : '–'}</td>
              <td>{group.failures > 0 ? dollars(group.failures) : '–'}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

function Title({ text, to }: { text: string; to: Partial<Route> | undefined }) {
  if (text === '') return <>nobody</>;
  return to ? <Go to={to}>{text}</Go> : <>{text}</>;
}

const money = ({ usd }: CostGroup) => (usd === null ? 'no price' : dollars(usd));

/** Budgets that have a cap, as bars. */
function Budgets({ lines }: { lines: readonly BudgetLine[] }) {
  return (
    <ul class="costs-budgets" aria-label="Budgets">
      {lines.map(({ scope, id, per, cap, spent }) => {
        const [used, most, words] =
          cap.usd === null
            ? [spent.tokens, cap.tokens ?? 0, `${short(spent.tokens)} of ${short(cap.tokens ?? 0)} tokens`]
            : [spent.usd, cap.usd, `${dollars(spent.usd)} of ${dollars(cap.usd)}`];
        const name = id === null ? scope : `${scope} ${nameOf(id)}`;
        return (
          <li key={`${scope} ${id}`}>
            <span>
              {name}, a {per}: {words}
            </span>
            <progress max={most} value={used} aria-label={`Budget of ${name}`} />
          </li>
        );
      })}
    </ul>
  );
}
