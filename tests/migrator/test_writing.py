"""Text written without bookkeeping is what libcst itself writes."""

from __future__ import annotations

from pathlib import Path

import libcst as cst
import pytest

from migrator.writing import code, module_code

ROOT = Path(__file__).parents[2]
FORMS = '''
@ decorator( a , *b , c = 1 , ** d )
async  def  f ( a , / , b : int = 1 , * , c  = 2 , ** d )  ->  list [ int ] :  # here
    async with ( x as y , z ) :
        await  y
    async  for i in  x :
        yield  i
    else  :
        return

class  A ( B , metaclass = C ) :
    """Text."""

    a : int  =  1 ; b = 2
    pass ; x += 1

def g ( * args ) : return  lambda  x , y = 1 : ( yield  from  x )
if  a :
  b
elif  not  b :  c
else :
    del  a , ( b )
while  a  <  b  is not  c  not in  d :
    break
try :
    raise  E ( ) from  e
except  ( A , B )  as  e :
    continue
finally :
    assert  a , b
a  =  b  =  ( ( c ) )  if  ( d )  else  - e
a = [ 1 , * b ] , { 1 , 2 } , { 'a' : 1 , ** b } , ( 1 , ) , [ x  for  x  in  y  if  z ]
x [ 1 : 2 , ... , : : 3 ]  =  f"{ a !r:>{ b }} text" "other"
a = ( b
    # between
    . c ( d ,

          e ) )
from  . a  import  ( b  as  c , d , )
import  a . b  as  c
global  x
print ( a  and  b  or  c , x  :=  1 ) if ( x := 1 ) else 2
with  a  as  b : pass
match  a :
    case  { "x" : 1 , ** rest } | [ 1 , * _ ] if b :
        pass
'''


def test_every_form_of_statement_and_expression() -> None:
    tree = cst.parse_module(FORMS)
    assert module_code(tree) == tree.code == FORMS


@pytest.mark.parametrize("text", ["", "\n", "a", "a\r\nb\r\n", "if a:\n\tb\n"])
def test_ends_of_lines_and_files(text: str) -> None:
    assert module_code(cst.parse_module(text)) == text


def test_what_is_made_without_its_commas() -> None:
    made = cst.Call(cst.Name("f"), [cst.Arg(cst.Name("a")), cst.Arg(cst.Name("b"), cst.Name("c"))])
    assert code(made) == cst.Module([]).code_for_node(made) == "f(a, c = b)"


@pytest.mark.parametrize("path", sorted((ROOT / "samples").glob("*.py")), ids=lambda p: p.stem)
def test_samples(path: Path) -> None:
    text = path.read_text()
    assert module_code(cst.parse_module(text)) == text
