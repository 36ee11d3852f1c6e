import type { ComponentChildren } from 'preact';
import { useState } from 'preact/hooks';
import type { ErasureReceipt } from '../../../src/library/troupe.ts';
import { Copy } from '../shared/copy.tsx';
import { messageOf, plural } from '../shared/format.ts';
import { api, type ErasureAsked } from '../state/api.ts';
import { dialog, type Erasing } from '../state/dialogs.ts';
import { conversation, go } from '../state/route.ts';
import { Dialog } from './dialog.tsx';
import '../style/erase.css';

type Asked =
  | { state: 'asking'; refused: string | null }
  | { state: 'sent' }
  | { state: 'done'; receipt: ErasureReceipt };

/** Erases a person's text or a conversation permanently. The user must first type what to erase. */
export function EraseDialog({ subject }: { subject: Erasing }) {
  const [asked, setAsked] = useState<Asked>({ state: 'asking', refused: null });
  const erase = async (meant: ErasureAsked) => {
    setAsked({ state: 'sent' });
    try {
      setAsked({ state: 'done', receipt: await api.erase(meant) });
    } catch (error) {
      setAsked({ state: 'asking', refused: messageOf(error) });
    }
  };
  const isPerson = 'person' in subject;
  const label = isPerson ? `Erase what ${subject.name || 'a person'} has said` : 'Erase this conversation';
  return (
    <Dialog label={label}>
      <h2>{asked.state === 'done' ? 'Erased' : label}</h2>
      {asked.state === 'done' ? (
        <Receipt receipt={asked.receipt} />
      ) : (
        <>
          {isPerson ? <OfPerson name={subject.name} /> : <OfConversation />}
          <Outside />
          <Confirm subject={subject} asked={asked} erase={erase} />
        </>
      )}
    </Dialog>
  );
}

function OfPerson({ name }: { name: string }) {
  return (
    <Fact name="What will be gone, in all conversations">
      <ul>
        <li>all words of {name || 'the person'}, their profile, and files that nobody else has sent</li>
        <li>what agents made of them: the turns and tasks that answered, with arguments and results</li>
        <li>elsewhere, the words that were repeated; summaries are made again without them</li>
      </ul>
      Marked holes stay, with ids, times and authors. The logs can still be verified.
    </Fact>
  );
}

function OfConversation() {
  return (
    <Fact name="What will be gone">
      <ul>
        <li>the conversation with all its events, and the threads of its tasks</li>
        <li>files and texts of prompts that no other conversation names</li>
      </ul>
      No hole stays: the conversation is as if it had never been.
    </Fact>
  );
}

function Outside() {
  return (
    <Fact name="What lies outside, and stays">
      What the vendors of models, webhooks and open pages have received, backups, exports made before, and
      logs. The receipt lists it.
    </Fact>
  );
}

interface ConfirmProps {
  subject: Erasing;
  asked: Asked;
  erase: (meant: ErasureAsked) => Promise<void>;
}

function Confirm({ subject, asked, erase }: ConfirmProps) {
  const [person, setPerson] = useState('person' in subject ? (subject.person ?? '') : '');
  const [typed, setTyped] = useState('');
  const meant = 'person' in subject ? { person: person.trim() } : { conversation: subject.conversation };
  const id = 'person' in meant ? meant.person : meant.conversation;
  const isMeant = id !== '' && typed === id;
  const isSent = asked.state === 'sent';
  return (
    <form
      class="erase-form"
      onSubmit={(event) => {
        event.preventDefault();
        if (isMeant && !isSent) void erase(meant);
      }}
    >
      {'person' in subject && subject.person === null && (
        <Field label="Id of the person, as authors have it" value={person} set={setPerson} isOff={isSent} />
      )}
      <Field
        label={id === '' ? 'The same id again' : `Type ${id} to confirm`}
        value={typed}
        set={setTyped}
        isOff={isSent}
      />
      <p class="erase-acts">
        <button type="submit" class="button erase-button" disabled={!isMeant || isSent}>
          {isSent ? 'Erasing …' : 'Erase for good'}
        </button>
        <button type="button" class="button" onClick={close}>
          {isSent ? 'Close; it goes on' : 'Cancel'}
        </button>
      </p>
      <p class="problem" role="alert">
        {asked.state === 'asking' ? asked.refused : ''}
      </p>
    </form>
  );
}

interface FieldProps {
  label: string;
  value: string;
  set: (value: string) => void;
  isOff: boolean;
}

function Field({ label, value, set, isOff }: FieldProps) {
  return (
    <label>
      {label}
      <input
        type="text"
        autocomplete="off"
        spellcheck={false}
        value={value}
        disabled={isOff}
        onInput={(event) => set(event.currentTarget.value)}
      />
    </label>
  );
}

/** What was done, without the erased text. */
function Receipt({ receipt }: { receipt: ErasureReceipt }) {
  const isOpen = 'conversation' in receipt && receipt.conversation === conversation.value;
  return (
    <div role="status">
      <Fact name="What was done">
        {[
          plural(receipt.conversations, 'conversation'),
          plural(receipt.events, 'event'),
          plural(receipt.attachments, 'file'),
          plural(receipt.entries, 'other record'),
          `${plural(receipt.sessions, 'session')} with vendors`,
        ].join(', ')}
      </Fact>
      <List name="What the store may still have" lines={receipt.remains} />
      <List name="What lies outside" lines={receipt.outside} />
      <p class="erase-acts">
        <Copy text={JSON.stringify(receipt, null, 2)} label={`Copy receipt ${receipt.id}`} />
        <button
          type="button"
          class="button"
          onClick={() => {
            close();
            if (isOpen) go({ conversation: null });
          }}
        >
          Close
        </button>
      </p>
    </div>
  );
}

function List({ name, lines }: { name: string; lines: readonly string[] }) {
  if (lines.length === 0) return null;
  return (
    <Fact name={name}>
      <ul>
        {lines.map((line) => (
          <li key={line}>{line}</li>
        ))}
      </ul>
    </Fact>
  );
}

function Fact({ name, children }: { name: string; children: ComponentChildren }) {
  return (
    <section class="erase-fact">
      <h3>{name}</h3>
      {children}
    </section>
  );
}

function close(): void {
  dialog.value = null;
}
