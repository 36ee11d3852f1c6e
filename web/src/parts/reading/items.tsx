import type { TaskView } from '../../../../src/library/projection/model.ts';
import { clock } from '../../shared/format.ts';
import { Go } from '../../shared/go.tsx';
import { ERASED } from '../../shared/erased.ts';
import { memo } from '../../shared/memo.ts';
import type { NoteItem, ReadingItem } from '../../state/reading-items.ts';
import { nameOf, turns } from '../../state/selection.ts';
import { ErrorBanner } from '../error-banner.tsx';
import { Asked } from './asked.tsx';
import { Delegated, type DrawThread } from './delegated.tsx';
import { HandedOver } from './handed-over.tsx';
import { Words } from './words.tsx';
import { Work } from './work.tsx';

/** A speaker who continues within this time is not named again, ms. */
const SAME_BREATH_MS = 5 * 60_000;
const DAY = new Intl.DateTimeFormat('en-GB', {
  weekday: 'long',
  day: 'numeric',
  month: 'long',
  year: 'numeric',
});

interface ItemsProps {
  items: readonly ReadingItem[];
  conversation: string;
  /** 0 in the conversation, more in threads within it. */
  depth: number;
  /** Seq of the item to show. */
  shown: number | null;
  /** The tasks that this page may answer, by id. */
  open?: ReadonlyMap<string, TaskView>;
}

/** The items in order, with a heading for each day. */
export function Items({ items, conversation, depth, shown: sought, open }: ItemsProps) {
  return (
    <>
      {items.map((item, index) => {
        const before = items[index - 1];
        const day = DAY.format(item.at);
        const isNewDay = before === undefined ? depth === 0 : day !== DAY.format(before.at);
        return (
          <div
            key={`${item.kind} ${item.seq}`}
            class={`item${item.seq === sought ? ' item-shown' : ''}`}
            data-seq={item.seq}
          >
            {isNewDay && <h2 class="item-day">{day}</h2>}
            <Item
              item={item}
              goesOn={!isNewDay && before !== undefined && isSameBreath(before, item)}
              conversation={conversation}
              depth={depth}
              task={item.kind === 'ask' ? (open?.get(item.task) ?? null) : null}
            />
            {item.isErased && <p class="hole">{ERASED}</p>}
          </div>
        );
      })}
    </>
  );
}

const drawThread: DrawThread = (items, thread, depth) => (
  <Items items={items} conversation={thread} depth={depth} shown={null} />
);

function isSameBreath(before: ReadingItem, item: ReadingItem): boolean {
  if (!('author' in before && 'author' in item) || before.kind === 'ask' || before.kind === 'handoff')
    return false;
  const isSame = before.author.kind === item.author.kind && before.author.id === item.author.id;
  const hasNewAddressee = item.kind === 'words' && item.to.length > 0;
  return isSame && !hasNewAddressee && item.at - before.at < SAME_BREATH_MS;
}

interface ItemProps {
  item: ReadingItem;
  goesOn: boolean;
  conversation: string;
  depth: number;
  task: TaskView | null;
}

function Item({ item, goesOn, conversation, depth, task }: ItemProps) {
  switch (item.kind) {
    case 'words':
      return <Words item={item} conversation={conversation} goesOn={goesOn} depth={depth} />;
    case 'work':
      return <Work item={item} goesOn={goesOn} />;
    case 'ask':
      return <Asked item={item} conversation={conversation} task={task} />;
    case 'handoff':
      return <HandedOver item={item} />;
    case 'delegation':
      return <Delegated item={item} depth={depth} draw={drawThread} />;
    case 'note':
      return <Note item={item} />;
  }
}

/** A failed turn of this conversation shows what a person can do about it. */
const Note = memo(function Note({ item }: { item: NoteItem }) {
  const { at, about, level, seq, failed } = item;
  const text = about === null ? item.text : item.text.replace(`@${about}`, () => nameOf(about));
  const turn = failed === null ? undefined : turns.value.find(({ id }) => id === failed);
  if (turn?.error)
    return (
      <section class="note-failed" aria-label={`The turn of ${turn.agent} failed`}>
        <p>
          <b>
            <bdi>{nameOf(turn.agent)}</bdi>
          </b>{' '}
          <b class="problem">failed</b>
        </p>
        <ErrorBanner turn={turn} />
      </section>
    );
  return (
    <p class={`note note-${level}`} dir="auto">
      <span>{text}</span>{' '}
      <Go class="words-time" to={{ event: seq, tab: 'raw' }} title={`Event ${seq}`}>
        {clock(at).slice(0, 5)}
      </Go>
    </p>
  );
});
